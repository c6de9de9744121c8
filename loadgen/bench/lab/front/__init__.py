"""The shop as a lab runs it: it says what requests cost, and asks a service of stock."""
