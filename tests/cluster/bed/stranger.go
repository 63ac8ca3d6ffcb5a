// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
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
	nvidia   bool
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
	s := &Stranger{socket: filepath.Join(k.PluginDir, fmt.Sprintf("stranger-%d.sock", strangers.Add(1)))}
	for i := range n {
		s.devices = append(s.devices, &api.Device{ID: "stranger-" + string(rune('a'+i)), Health: api.Healthy})
	}
	s.start(t, k, resource)
	return s
}

// StartNVIDIA serves devices as NVIDIA's plugin does: with its ids, under its socket's name, and with
// its answer, the ids in NVIDIA_VISIBLE_DEVICES (of a replica "GPU-1::0" the device alone).
func StartNVIDIA(t testing.TB, k *Kubelet, resource string, ids ...string) *Stranger {
	t.Helper()
	name := "nvidia-" + strings.TrimPrefix(resource, "nvidia.com/") + ".sock"
	s := &Stranger{nvidia: true, socket: filepath.Join(k.PluginDir, name)}
	for _, id := range ids {
		s.devices = append(s.devices, &api.Device{ID: id, Health: api.Healthy})
	}
	s.start(t, k, resource)
	return s
}

func (s *Stranger) start(t testing.TB, k *Kubelet, resource string) {
	t.Helper()
	s.server, s.gone = grpc.NewServer(), make(chan struct{})
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
	for _, container := range req.ContainerRequests {
		if s.nvidia {
			var visible []string
			for _, id := range container.DevicesIds {
				device, _, _ := strings.Cut(id, "::")
				visible = append(visible, device)
			}
			resp.ContainerResponses = append(resp.ContainerResponses, &api.ContainerAllocateResponse{
				Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(visible, ",")}})
			continue
		}
		resp.ContainerResponses = append(resp.ContainerResponses, &api.ContainerAllocateResponse{
			Envs:    map[string]string{"STRANGER": "yes, a=b"},
			Devices: []*api.DeviceSpec{{ContainerPath: "/dev/stranger", HostPath: "/dev/null", Permissions: "r"}},
		})
	}
	return resp, nil
}
