"""Faults of origin servers, clients, machines and names, and what becomes of requests."""
