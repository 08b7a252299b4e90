"""The whole gateway for minutes or hours, under all faults at once."""
