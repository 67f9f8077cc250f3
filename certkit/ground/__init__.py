"""What every room stands on: canonical JSON, files, errors, texts, documents."""
