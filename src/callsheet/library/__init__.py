"""Many sessions: finding, importing and keeping them. The room that opens files for the adapters."""
