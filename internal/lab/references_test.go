package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadReferencesFindsEveryWayToNameASecretOrADisk(t *testing.T) {
	got, err := ReadReferences([]byte(`{"spec": {
		"dataVolumeTemplates": [{"metadata": {"name": "fresh"}}],
		"template": {"spec": {
			"volumes": [
				{"name": "a", "cloudInitNoCloud": {"secretRef": {"name": "s0"}, "networkDataSecretRef": {"name": "s1"}, "userData": "x"}},
				{"name": "b", "cloudInitConfigDrive": {"secretRef": {"name": "s2"}, "networkDataSecretRef": {"name": "s3"}, "networkDataBase64": "eA=="}},
				{"name": "c", "secret": {"secretName": "s4"}},
				{"name": "d", "sysprep": {"secret": {"name": "s5"}}},
				{"name": "e", "persistentVolumeClaim": {"claimName": "d0"}},
				{"name": "f", "ephemeral": {"persistentVolumeClaim": {"claimName": "d1", "readOnly": true}}},
				{"name": "g", "ephemeral": {"persistentVolumeClaim": {"claimName": "d2"}}},
				{"name": "h", "dataVolume": {"name": "d3"}},
				{"name": "i", "memoryDump": {"claimName": "d4"}},
				{"name": "j", "containerDisk": {"image": "x"}},
				{"name": "k", "aSourceOfANewerKubeVirt": {"secretName": "unknown"}}
			],
			"accessCredentials": [
				{"sshPublicKey": {"source": {"secret": {"secretName": "s6"}}, "propagationMethod": {"noCloud": {}}}},
				{"userPassword": {"source": {"secret": {"secretName": "s7"}}, "propagationMethod": {"qemuGuestAgent": {}}}}
			]
		}}
	}}`))
	if err != nil {
		t.Fatal(err)
	}
	volumes, credentials := "spec.template.spec.volumes", "spec.template.spec.accessCredentials"
	want := References{
		Secrets: []SecretReference{
			{NamedField{"s0", volumes + "[0].cloudInitNoCloud.secretRef.name"}, true},
			{NamedField{"s1", volumes + "[0].cloudInitNoCloud.networkDataSecretRef.name"}, true},
			{NamedField{"s2", volumes + "[1].cloudInitConfigDrive.secretRef.name"}, true},
			{NamedField{"s3", volumes + "[1].cloudInitConfigDrive.networkDataSecretRef.name"}, true},
			{NamedField{"s4", volumes + "[2].secret.secretName"}, false},
			{NamedField{"s5", volumes + "[3].sysprep.secret.name"}, false},
			{NamedField{"s6", credentials + "[0].sshPublicKey.source.secret.secretName"}, false},
			{NamedField{"s7", credentials + "[1].userPassword.source.secret.secretName"}, false},
		},
		Disks: []DiskReference{
			{NamedField{"d0", volumes + "[4].persistentVolumeClaim.claimName"}, false},
			{NamedField{"d1", volumes + "[5].ephemeral.persistentVolumeClaim.claimName"}, true},
			{NamedField{"d2", volumes + "[6].ephemeral.persistentVolumeClaim.claimName"}, false},
			{NamedField{"d3", volumes + "[7].dataVolume.name"}, false},
			{NamedField{"d4", volumes + "[8].memoryDump.claimName"}, false},
		},
		DataVolumeTemplates: []NamedField{{"fresh", "spec.dataVolumeTemplates[0].metadata.name"}},
		InlineCloudInit:     []string{volumes + "[0].cloudInitNoCloud.userData", volumes + "[1].cloudInitConfigDrive.networkDataBase64"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestReadReferencesRefusesWhatItCannotRead(t *testing.T) {
	for _, machine := range []string{"", "[]", `{"spec": {"template": {"spec": {"volumes": "none"}}}}`} {
		if _, err := ReadReferences([]byte(machine)); err == nil {
			t.Errorf("%q: no error", machine)
		}
	}
}
