// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Stranger is a device plugin that is not weft's: it proves the bed without weft, and it is the
// other plugin that registers weft's resource.
type Stranger struct {
	api.UnimplementedDevicePluginServer
	devices  []*api.Device
	socket   string
	server   *grpc.Server
	shutdown sync.Once
	gone     chan struct{}
}

var strangers atomic.Int32

// StartStranger serves n devices and registers them as resource.
func StartStranger(t testing.TB, k *Kubelet, resource string, n int) *Stranger {
	t.Helper()
	s := &Stranger{socket: filepath.Join(k.PluginDir, fmt.Sprintf("stranger-%d.sock", strangers.Add(1))), server: grpc.NewServer(), gone: make(chan struct{})}
	for i := range n {
		s.devices = append(s.devices, &api.Device{ID: "stranger-" + string(rune('a'+i)), Health: api.Healthy})
	}
	_ = os.Remove(s.socket)
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	api.RegisterDevicePluginServer(s.server, s)
	go func() { _ = s.server.Serve(listener) }()
	t.Cleanup(s.Stop)

	conn, err := grpc.NewClient("unix://"+filepath.Join(k.PluginDir, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(Context(t), 15*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(conn).Register(ctx, &api.RegisterRequest{Version: api.Version,
		Endpoint: filepath.Base(s.socket), ResourceName: resource}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("the stranger's registration: %v", err)
	}
	return s
}

// Stop ends its streams and removes its socket.
func (s *Stranger) Stop() {
	s.shutdown.Do(func() {
		close(s.gone)
		s.server.Stop()
		_ = os.Remove(s.socket)
	})
}

func (s *Stranger) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (s *Stranger) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: s.devices}); err != nil {
		return err
	}
	select {
	case <-stream.Context().Done():
	case <-s.gone:
	}
	return nil
}

// Allocate hands out one of each kind of thing that a device plugin can ask for.
func (s *Stranger) Allocate(_ context.Context, req *api.AllocateRequest) (*api.AllocateResponse, error) {
	resp := &api.AllocateResponse{}
	for range req.ContainerRequests {
		resp.ContainerResponses = append(resp.ContainerResponses, &api.ContainerAllocateResponse{
			Envs:    map[string]string{"STRANGER": "yes, a=b"},
			Devices: []*api.DeviceSpec{{ContainerPath: "/dev/stranger", HostPath: "/dev/null", Permissions: "r"}},
		})
	}
	return resp, nil
}
