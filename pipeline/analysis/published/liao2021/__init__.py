"""Methods of Liao et al. (2021), which compare two releases without profiles: forests, and their baseline."""
