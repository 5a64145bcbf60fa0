// main: starts `Writing`, whose code does not belong to the main actor. The program writes to a
// disk tier until it is killed.

await Writing.run()
