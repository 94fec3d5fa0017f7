"""Faces: command line, workbench, page. Each only translates rows or painted lines, and knows no other."""
