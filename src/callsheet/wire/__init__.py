"""Bytes, lines, lossless JSON, blobs and atomic writes.

The lowest room: it knows bytes and files, and nothing of records. ``lines`` cuts a byte stream into physical lines
with offsets, ``lossless`` proves or refuses that a JSON text survives a read-write trip (ASR-032, ASR-035),
``spans`` finds the bytes of a part of a JSON text, ``damage`` finds the whole JSON values in a damaged line,
``blobs`` keeps bytes under their own digest, ``files`` makes private files that are either whole or absent.
"""
