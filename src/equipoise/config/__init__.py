"""Parts of configurations that several rooms read, and their YAML."""
