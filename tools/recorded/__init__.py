"""Record findings and tables of every example and demo, and compare two records."""
