package lab

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// References is what a virtual machine refers to by name, in its own namespace. The fields are paths in the virtual machine.
type References struct {
	// Secrets are all Secrets that reach the guest or its launcher.
	Secrets []SecretReference
	// Disks are the PersistentVolumeClaims, or DataVolumes with the claim of their name, that are attached.
	Disks []DiskReference
	// DataVolumeTemplates are the DataVolumes that KubeVirt makes for the virtual machine.
	DataVolumeTemplates []NamedField
	// InlineCloudInit are the fields that hold cloud-init data in the clear.
	InlineCloudInit []string
}

// NamedField is a name and where it stands.
type NamedField struct {
	Name  string
	Field string
}

// SecretReference is a Secret and what it is for.
type SecretReference struct {
	NamedField
	// CloudInit tells whether it carries cloud-init data.
	CloudInit bool
}

// DiskReference is a disk and how it is attached.
type DiskReference struct {
	NamedField
	// BelowLayer is true for a claim that is attached read-only below an ephemeral write layer.
	BelowLayer bool
}

// DataVolumeTemplate is the part of a dataVolumeTemplate that is read for references.
type DataVolumeTemplate struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// ReferringSpec is the part of a template's spec that is read for references, in KubeVirt's own types. All of KubeVirt's type is not to
// be had by a decoder that minds the case of fields: that type reads itself by another.
type ReferringSpec struct {
	Volumes           []kubevirtv1.Volume           `json:"volumes"`
	AccessCredentials []kubevirtv1.AccessCredential `json:"accessCredentials"`
	UtilityVolumes    []kubevirtv1.UtilityVolume    `json:"utilityVolumes"`
}

// ReadReferences reads the references of a virtual machine given as JSON.
func ReadReferences(machine []byte) (References, error) {
	var content struct {
		Spec struct {
			DataVolumeTemplates []DataVolumeTemplate `json:"dataVolumeTemplates"`
			Template            struct {
				Spec ReferringSpec `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(machine, &content); err != nil {
		return References{}, fmt.Errorf("reading what the virtual machine refers to: %w", err)
	}
	return NewReferences(content.Spec.DataVolumeTemplates, content.Spec.Template.Spec), nil
}

// NewReferences gives the references of a virtual machine with these dataVolumeTemplates and this spec of its template.
func NewReferences(templates []DataVolumeTemplate, spec ReferringSpec) References {
	var r References
	for i, template := range templates {
		r.DataVolumeTemplates = append(r.DataVolumeTemplates, NamedField{template.Metadata.Name, fmt.Sprintf("spec.dataVolumeTemplates[%d].metadata.name", i)})
	}
	for i, volume := range spec.Volumes {
		r.addVolume(volume.VolumeSource, fmt.Sprintf("spec.template.spec.volumes[%d]", i))
	}
	for i, credential := range spec.AccessCredentials {
		field := fmt.Sprintf("spec.template.spec.accessCredentials[%d]", i)
		if key := credential.SSHPublicKey; key != nil && key.Source.Secret != nil {
			r.addSecret(key.Source.Secret.SecretName, field+".sshPublicKey.source.secret.secretName", false)
		}
		if password := credential.UserPassword; password != nil && password.Source.Secret != nil {
			r.addSecret(password.Source.Secret.SecretName, field+".userPassword.source.secret.secretName", false)
		}
	}
	for i, volume := range spec.UtilityVolumes {
		// The guest has no disk of it, and the launcher writes into it: a backup, or the guest's memory.
		r.addDisk(volume.ClaimName, fmt.Sprintf("spec.template.spec.utilityVolumes[%d].claimName", i), false)
	}
	return r
}

func (r *References) addVolume(source kubevirtv1.VolumeSource, field string) {
	if cloudInit := source.CloudInitNoCloud; cloudInit != nil {
		r.addCloudInit(field+".cloudInitNoCloud", cloudInit.UserDataSecretRef, cloudInit.NetworkDataSecretRef,
			cloudInit.UserData, cloudInit.UserDataBase64, cloudInit.NetworkData, cloudInit.NetworkDataBase64)
	}
	if cloudInit := source.CloudInitConfigDrive; cloudInit != nil {
		r.addCloudInit(field+".cloudInitConfigDrive", cloudInit.UserDataSecretRef, cloudInit.NetworkDataSecretRef,
			cloudInit.UserData, cloudInit.UserDataBase64, cloudInit.NetworkData, cloudInit.NetworkDataBase64)
	}
	if source.Secret != nil {
		r.addSecret(source.Secret.SecretName, field+".secret.secretName", false)
	}
	if source.Sysprep != nil && source.Sysprep.Secret != nil {
		r.addSecret(source.Sysprep.Secret.Name, field+".sysprep.secret.name", false)
	}
	if claim := source.PersistentVolumeClaim; claim != nil {
		r.addDisk(claim.ClaimName, field+".persistentVolumeClaim.claimName", false)
	}
	if source.Ephemeral != nil && source.Ephemeral.PersistentVolumeClaim != nil {
		claim := source.Ephemeral.PersistentVolumeClaim
		r.addDisk(claim.ClaimName, field+".ephemeral.persistentVolumeClaim.claimName", claim.ReadOnly)
	}
	if source.DataVolume != nil {
		r.addDisk(source.DataVolume.Name, field+".dataVolume.name", false)
	}
	if source.MemoryDump != nil {
		r.addDisk(source.MemoryDump.ClaimName, field+".memoryDump.claimName", false)
	}
}

// addCloudInit takes the two Secrets and the four inline fields of a cloud-init source, in the order of KubeVirt's type.
func (r *References) addCloudInit(field string, userData, networkData *corev1.LocalObjectReference, inline ...string) {
	if userData != nil {
		r.addSecret(userData.Name, field+".secretRef.name", true)
	}
	if networkData != nil {
		r.addSecret(networkData.Name, field+".networkDataSecretRef.name", true)
	}
	for i, name := range []string{"userData", "userDataBase64", "networkData", "networkDataBase64"} {
		if inline[i] != "" {
			r.InlineCloudInit = append(r.InlineCloudInit, field+"."+name)
		}
	}
}

func (r *References) addSecret(name, field string, cloudInit bool) {
	if name != "" {
		r.Secrets = append(r.Secrets, SecretReference{NamedField{name, field}, cloudInit})
	}
}

func (r *References) addDisk(name, field string, belowLayer bool) {
	if name != "" {
		r.Disks = append(r.Disks, DiskReference{NamedField{name, field}, belowLayer})
	}
}
