// Command structs prints, as JSON, how Kubernetes' own Go types read and write JSON: which fields a struct has, which
// are pointers, and which are left out when empty. tools/generate_builtins.py runs it in the module of the control
// plane's programs and keeps the answer as data.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// shape is one type. Element is the index of what a list, map or pointer holds.
type shape struct {
	Kind    string  `json:"kind"`
	Name    string  `json:"name"`
	Element *int    `json:"element,omitempty"`
	Fields  []field `json:"fields,omitempty"`
}

// field is one key of a struct. Through lists the embedded structs on the way, which error messages name. Numbers are
// those of the protobuf messages on the way and of the field itself; a field without them is not in the message.
type field struct {
	Key       string   `json:"key"`
	Shape     int      `json:"shape"`
	OmitEmpty bool     `json:"omitEmpty,omitempty"`
	OmitZero  bool     `json:"omitZero,omitempty"`
	Through   []string `json:"through,omitempty"`
	Numbers   []int    `json:"numbers,omitempty"`
}

type catalog struct {
	Kinds  map[string]int `json:"kinds"`
	Shapes []*shape       `json:"shapes"`
	seen   map[reflect.Type]int
}

// absent is the way to what an embedded struct without a protobuf number holds; no field has the number 0.
var absent = []int{0}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (c *catalog) add(t reflect.Type) int {
	if index, ok := c.seen[t]; ok {
		return index
	}
	made := &shape{Name: t.String()}
	index := len(c.Shapes)
	c.seen[t] = index
	c.Shapes = append(c.Shapes, made)
	c.describe(made, t)
	return index
}

func (c *catalog) describe(made *shape, t reflect.Type) {
	element := func() {
		index := c.add(t.Elem())
		made.Element = &index
	}
	switch {
	case t.Kind() == reflect.Pointer:
		made.Kind = "pointer"
		element()
	case reflect.PointerTo(t).Implements(unmarshaler):
		made.Kind = "special"
	case t.Kind() == reflect.Struct:
		made.Kind = "struct"
		c.fields(made, t, nil, nil)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		made.Kind = "bytes"
	case t.Kind() == reflect.Slice:
		made.Kind = "list"
		element()
	case t.Kind() == reflect.Map:
		made.Kind = "map"
		element()
	default:
		made.Kind = t.Kind().String()
	}
}

func (c *catalog) fields(made *shape, t reflect.Type, through []string, numbers []int) {
	for i := range t.NumField() {
		member := t.Field(i)
		key, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if key == "-" || !member.IsExported() {
			continue
		}
		if key == "" && member.Anonymous {
			inner := member.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			way := path(numbers, member)
			if way == nil {
				way = absent
			}
			c.fields(made, inner, append(append([]string{}, through...), member.Name), way)
			continue
		}
		if key == "" {
			key = member.Name
		}
		made.Fields = append(made.Fields, field{
			Key:       key,
			Shape:     c.add(member.Type),
			OmitEmpty: strings.Contains(options, "omitempty"),
			OmitZero:  strings.Contains(options, "omitzero"),
			Through:   through,
			Numbers:   path(numbers, member),
		})
	}
}

// path adds the protobuf number of a member to those on the way to it. A member that has none is not in the message.
func path(numbers []int, member reflect.StructField) []int {
	parts := strings.Split(member.Tag.Get("protobuf"), ",")
	if len(parts) < 2 || slices.Equal(numbers, absent) {
		return nil
	}
	number, err := strconv.Atoi(parts[1])
	must(err)
	return append(append([]int{}, numbers...), number)
}

func main() {
	kinds := runtime.NewScheme()
	must(scheme.AddToScheme(kinds))
	must(apiextensions.AddToScheme(kinds))
	must(apiregistration.AddToScheme(kinds))
	found := &catalog{Kinds: map[string]int{}, seen: map[reflect.Type]int{}}
	wanted := map[string]bool{}
	for _, name := range os.Args[1:] {
		wanted[name] = true
	}
	types := map[string]reflect.Type{"ObjectMeta": reflect.TypeFor[metav1.ObjectMeta]()}
	for gvk, t := range kinds.AllKnownTypes() {
		if name := gvk.GroupVersion().String() + "/" + gvk.Kind; wanted[name] {
			types[name] = t
		}
	}
	names := []string{}
	for name := range types {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		found.Kinds[name] = found.add(types[name])
	}
	must(json.NewEncoder(os.Stdout).Encode(found))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
