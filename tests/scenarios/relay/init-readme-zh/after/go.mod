module tern

go 1.22
