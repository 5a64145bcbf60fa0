package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"pictor"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		server := pictor.Server{Base: fields[0], KeyID: fields[1], Secret: fields[2]}
		options := pictor.Options{Path: fields[3], More: map[string]string{}}
		for _, item := range fields[6:] {
			parts := strings.SplitN(item, "=", 2)
			number, _ := strconv.ParseInt(parts[1], 10, 64)
			switch name := parts[0]; {
			case fields[4] == "0":
				options.More[name] = parts[1]
			case name == "w":
				options.Width = int(number)
			case name == "h":
				options.Height = int(number)
			case name == "quality":
				options.Quality = int(number)
			case name == "exp":
				options.Expires = number
			case name == "scale":
				options.Scale, _ = strconv.ParseFloat(parts[1], 64)
			case name == "fit":
				options.Fit = pictor.Fit(parts[1])
			case name == "position":
				options.Position = parts[1]
			case name == "format":
				options.Format = parts[1]
			case name == "preset":
				options.Preset = parts[1]
			}
		}
		fmt.Println(server.URL(fields[5], options))
	}
}
