// Command structs prints, as JSON, how Kubernetes' Go types decode and encode JSON: which fields a struct has, which of
// them are pointers, and which are omitted when empty. tools/generate_builtins.py runs it in the module of the control
// plane's programs and stores the output.
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

// goType is one type. Element is the index of the element type of a list, map or pointer.
type goType struct {
	Kind    string  `json:"kind"`
	Name    string  `json:"name"`
	Element *int    `json:"element,omitempty"`
	Fields  []field `json:"fields,omitempty"`
}

// field is one key of a struct. Through lists the embedded structs that contain it, because error messages name them.
// Numbers are the protobuf field numbers of these structs and of the field; a field without them is not in the message.
type field struct {
	Key       string   `json:"key"`
	Type      int      `json:"type"`
	OmitEmpty bool     `json:"omitEmpty,omitempty"`
	OmitZero  bool     `json:"omitZero,omitempty"`
	Through   []string `json:"through,omitempty"`
	Numbers   []int    `json:"numbers,omitempty"`
}

type table struct {
	Kinds map[string]int `json:"kinds"`
	Types []*goType      `json:"types"`
	seen  map[reflect.Type]int
}

// absent is the path of an embedded struct without a protobuf number. No field has the number 0.
var absent = []int{0}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (c *table) add(t reflect.Type) int {
	if index, ok := c.seen[t]; ok {
		return index
	}
	added := &goType{Name: t.String()}
	index := len(c.Types)
	c.seen[t] = index
	c.Types = append(c.Types, added)
	c.describe(added, t)
	return index
}

func (c *table) describe(added *goType, t reflect.Type) {
	element := func() {
		index := c.add(t.Elem())
		added.Element = &index
	}
	switch {
	case t.Kind() == reflect.Pointer:
		added.Kind = "pointer"
		element()
	case reflect.PointerTo(t).Implements(unmarshaler):
		added.Kind = "special"
	case t.Kind() == reflect.Struct:
		added.Kind = "struct"
		c.fields(added, t, nil, nil)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		added.Kind = "bytes"
	case t.Kind() == reflect.Slice:
		added.Kind = "list"
		element()
	case t.Kind() == reflect.Map:
		added.Kind = "map"
		element()
	default:
		added.Kind = t.Kind().String()
	}
}

func (c *table) fields(added *goType, t reflect.Type, through []string, numbers []int) {
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
			nested := path(numbers, member)
			if nested == nil {
				nested = absent
			}
			c.fields(added, inner, append(append([]string{}, through...), member.Name), nested)
			continue
		}
		if key == "" {
			key = member.Name
		}
		added.Fields = append(added.Fields, field{
			Key:       key,
			Type:      c.add(member.Type),
			OmitEmpty: strings.Contains(options, "omitempty"),
			OmitZero:  strings.Contains(options, "omitzero"),
			Through:   through,
			Numbers:   path(numbers, member),
		})
	}
}

// path appends the protobuf number of a member to those of its structs, or returns nil if the member has none.
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
	found := &table{Kinds: map[string]int{}, seen: map[reflect.Type]int{}}
	requested := map[string]bool{}
	for _, name := range os.Args[1:] {
		requested[name] = true
	}
	types := map[string]reflect.Type{"ObjectMeta": reflect.TypeFor[metav1.ObjectMeta]()}
	for gvk, t := range kinds.AllKnownTypes() {
		if name := gvk.GroupVersion().String() + "/" + gvk.Kind; requested[name] {
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
