"""An operator for Backup."""
