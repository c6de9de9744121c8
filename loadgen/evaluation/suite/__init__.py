"""The accuracy suite: scenarios × seeds, simulated, backtested and scored."""
