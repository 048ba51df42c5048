"""Rest, the application's half: who may use the background mind, and when it dreams, sleeps and learns."""
