"""Forms of export, a file each."""
