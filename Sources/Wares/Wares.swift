// Wares
