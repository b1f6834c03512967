// Command gonames prints the exported names below the given folders, one a line: packages, types, functions, methods,
// fields, constants, and the parameters of what is exported. tools/words/collect.py splits them into words.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// skipped are folders without an exported API.
var skipped = map[string]bool{
	"internal": true, "testdata": true, "vendor": true, "third_party": true, "examples": true, "hack": true, "test": true,
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, root := range os.Args[1:] {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && skipped[entry.Name()] {
				return filepath.SkipDir
			}
			if isSource(entry) {
				return printNames(out, path)
			}
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
}

// isSource leaves out tests and the output of the protobuf compiler, whose names nobody chose.
func isSource(entry fs.DirEntry) bool {
	name := entry.Name()
	return !entry.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasSuffix(name, ".pb.go")
}

func printNames(out *bufio.Writer, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if file.Name.Name == "main" || !ast.FileExports(file) {
		return nil
	}
	fmt.Fprintln(out, file.Name.Name)
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BlockStmt, *ast.BasicLit, *ast.CompositeLit:
			return false
		case *ast.FuncDecl:
			fmt.Fprintln(out, node.Name.Name)
		case *ast.TypeSpec:
			fmt.Fprintln(out, node.Name.Name)
		case *ast.ValueSpec:
			printAll(out, node.Names)
			return false
		case *ast.Field:
			printAll(out, node.Names)
		}
		return true
	})
	return nil
}

func printAll(out *bufio.Writer, names []*ast.Ident) {
	for _, name := range names {
		fmt.Fprintln(out, name.Name)
	}
}
