"""The bundle: its folder, its manifest, several bundles pooled, and calibration items."""
