// SPDX-License-Identifier: Apache-2.0

// Cdicheck reads CDI files as a container runtime does, by the library of the CDI project, and
// prints what a container would get for the devices that are named.
//
//	cdicheck FOLDER NAME...
//
// The answer is JSON: the OCI specification after the devices were let in. A file that breaks a
// rule, two files that name one device, and a name that no file has are errors.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func run(folder string, names []string) error {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(folder), cdi.WithAutoRefresh(false))
	if err != nil {
		return err
	}
	if err := cache.Refresh(); err != nil {
		return err
	}
	for path, errs := range cache.GetErrors() {
		return fmt.Errorf("%s: %v", path, errs)
	}
	spec := &oci.Spec{Version: oci.Version, Process: &oci.Process{}, Linux: &oci.Linux{}}
	if unknown, err := cache.InjectDevices(spec, names...); err != nil {
		return fmt.Errorf("%v: %w", unknown, err)
	}
	return json.NewEncoder(os.Stdout).Encode(spec)
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: cdicheck FOLDER NAME...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "cdicheck:", err)
		os.Exit(1)
	}
}
