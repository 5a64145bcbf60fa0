// The program that fills a disk folder. Everything it does is in Filling: what is written here would belong to the main
// actor.

await Filling.run()
