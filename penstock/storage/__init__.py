"""Files that outlive a process: segments, state files, the vault of backups, checkpoints."""
