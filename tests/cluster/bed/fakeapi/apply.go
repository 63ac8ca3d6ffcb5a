// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"maps"
	"slices"
	"strings"
)

// owners says which field managers own a field: what server-side apply takes away and what it
// fights about. A field is the path to a value that is no map, joined with NUL.
type owners map[string][]string

const separator = "\x00"

// leaves are the fields of an object; what the server itself keeps in metadata is nobody's.
func leaves(object Object) map[string]any {
	found := map[string]any{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		inner, isMap := value.(Object)
		if !isMap {
			found[path] = value
			return
		}
		for name, v := range inner {
			walk(path+separator+name, v)
		}
	}
	for name, value := range object {
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			for _, field := range []string{"labels", "annotations", "finalizers"} {
				if v, there := metadata(object)[field]; there {
					walk(separator+"metadata"+separator+field, v)
				}
			}
		default:
			walk(separator+name, value)
		}
	}
	return found
}

func same(a, b any) bool {
	return canonical(a) == canonical(b)
}

// own is who owns what after manager has written the object as a whole or in part: what it changed.
func (o owners) own(manager string, before, after Object) owners {
	next := maps.Clone(o)
	if next == nil {
		next = owners{}
	}
	was, is := leaves(before), leaves(after)
	for field := range next {
		if _, there := is[field]; !there {
			delete(next, field)
		}
	}
	for field, value := range is {
		if old, there := was[field]; !there || !same(old, value) {
			next[field] = []string{manager}
		}
	}
	return next
}

// apply is server-side apply: the object with the manager's fields as it wants them. The third
// result names the managers that own a field which would change, where force does not take it.
func (o owners) apply(manager string, live, wanted Object, force bool) (Object, owners, []string) {
	next := maps.Clone(o)
	if next == nil {
		next = owners{}
	}
	result := deepCopy(live)
	was, want := leaves(live), leaves(wanted)
	var conflicts []string
	for field, value := range want {
		old, there := was[field]
		others := slices.DeleteFunc(slices.Clone(next[field]), func(m string) bool { return m == manager })
		switch {
		case there && same(old, value):
			next[field] = append(others, manager)
		case len(others) > 0 && !force:
			conflicts = append(conflicts, others...)
		default:
			set(result, field, value)
			next[field] = []string{manager}
		}
	}
	for field, managers := range o {
		if _, wants := want[field]; wants || !slices.Contains(managers, manager) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(managers), func(m string) bool { return m == manager })
		if next[field] = others; len(others) == 0 {
			delete(next, field)
			set(result, field, nil)
		}
	}
	slices.Sort(conflicts)
	return result, next, slices.Compact(conflicts)
}

// set sets a field of an object that is the caller's alone; nil takes it away.
func set(object Object, field string, value any) {
	parts := strings.Split(field[1:], separator)
	for _, part := range parts[:len(parts)-1] {
		inner, ok := object[part].(Object)
		if !ok {
			if value == nil {
				return
			}
			inner = Object{}
			object[part] = inner
		}
		object = inner
	}
	if last := parts[len(parts)-1]; value == nil {
		delete(object, last)
	} else {
		object[last] = value
	}
}

// mergePatch is RFC 7386.
func mergePatch(target Object, patch Object) Object {
	next := maps.Clone(target)
	if next == nil {
		next = Object{}
	}
	for name, value := range patch {
		inner, isMap := value.(Object)
		switch {
		case value == nil:
			delete(next, name)
		case isMap:
			old, _ := next[name].(Object)
			next[name] = mergePatch(old, inner)
		default:
			next[name] = value
		}
	}
	return next
}
