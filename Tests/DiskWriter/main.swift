// The program that writes to a disk tier until it is killed. Everything it does is in Writing: what is written here would
// belong to the main actor.

await Writing.run()
