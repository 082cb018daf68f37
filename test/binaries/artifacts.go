package binaries

// artifact is one file to find or to build.
type artifact struct {
	// name is the file's name.
	name string
	// module is the directory below modules whose go.mod fixes the versions, main the package to build there.
	module string
	main   string
	// linkerFlags is the value of `go build -ldflags`.
	linkerFlags string
	// minor is the version, as major.minor, that a program which somebody else installed must have; empty: only our own build serves.
	minor string
	// usually tells how long a build takes with an empty build cache and the modules downloaded, on two cores.
	usually string
	// generated means that the artifact is the file that the program writes when given a path, not the program.
	generated bool
}

// kubernetesFlags gives the servers the version that a release build gets from its git tag. Without it they call themselves
// v0.0.0-master, and clients that look at the server's version go astray.
const kubernetesFlags = "-s -w" +
	" -X k8s.io/component-base/version.gitVersion=v1.34.10" +
	" -X k8s.io/component-base/version.gitMajor=1" +
	" -X k8s.io/component-base/version.gitMinor=34"

// kubevirtFlags leaves KubeVirt's servers without a version: nothing that they do here goes by it.
const kubevirtFlags = "-s -w"

var (
	etcd = artifact{
		name: "etcd", module: "etcd", main: "go.etcd.io/etcd/server/v3",
		linkerFlags: "-s -w", minor: "3.6", usually: "1 minute",
	}
	apiServer = artifact{
		name: "kube-apiserver", module: "kubernetes", main: "k8s.io/kubernetes/cmd/kube-apiserver",
		linkerFlags: kubernetesFlags, minor: "1.34", usually: "7 minutes",
	}
	controllerManager = artifact{
		name: "kube-controller-manager", module: "kubernetes", main: "k8s.io/kubernetes/cmd/kube-controller-manager",
		linkerFlags: kubernetesFlags, minor: "1.34", usually: "2 minutes after kube-apiserver",
	}
	scheduler = artifact{
		name: "kube-scheduler", module: "kubernetes", main: "k8s.io/kubernetes/cmd/kube-scheduler",
		linkerFlags: kubernetesFlags, minor: "1.34", usually: "1 minute after kube-apiserver",
	}
	kubelet = artifact{
		name: "kubelet", module: "kubernetes", main: "k8s.io/kubernetes/cmd/kubelet",
		linkerFlags: kubernetesFlags, minor: "1.34", usually: "1 minute after kube-apiserver",
	}
	kubectl = artifact{
		name: "kubectl", module: "kubectl", main: ".",
		linkerFlags: kubernetesFlags, usually: "2 minutes",
	}
	virtAPI = artifact{
		name: "virt-api", module: "kubevirt", main: "kubevirt.io/kubevirt/cmd/virt-api",
		linkerFlags: kubevirtFlags, usually: "2 minutes after KubeVirt's definitions",
	}
	virtController = artifact{
		name: "virt-controller", module: "kubevirt", main: "kubevirt.io/kubevirt/cmd/virt-controller",
		linkerFlags: kubevirtFlags, usually: "1 minute after virt-api",
	}
	kubevirtInstall = artifact{
		name: "kubevirt-install.yaml", module: "kubevirt", main: "./install",
		usually: "1 minute after KubeVirt's definitions", generated: true,
	}
	customResourceDefinitions = artifact{
		name: "kubevirt-crds.yaml", module: "kubevirt", main: "./crds",
		usually: "5 minutes", generated: true,
	}
)
