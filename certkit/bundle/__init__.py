"""The sealed folder of evidence: manifest, files, ratings."""
