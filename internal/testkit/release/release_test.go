package release

import (
	"archive/zip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/version"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestProgramsNeedOnlyAnOldGlibc(t *testing.T) {
	eachArchive(t, func(t *testing.T, a *archive) {
		program := filepath.Join(a.root, "bin", "chimbuko")
		missing, err := Missing(program, Glibc)
		if err != nil || len(missing) > 0 {
			t.Errorf("chimbuko needs %q beyond glibc 2.%d, %v", missing, Glibc, err)
		}
		// The limit matters: the program does need some version.
		older, err := Missing(program, 2)
		if err != nil || !slices.ContainsFunc(older, func(s string) bool { return strings.HasPrefix(s, "GLIBC_2.") }) {
			t.Errorf("chimbuko needs %q beyond glibc 2.2, %v; want symbol versions", older, err)
		}
		alone := filepath.Join(a.root, "bin", "chimbuko-ad")
		if missing, err := Missing(alone, 0); err != nil || len(missing) > 0 {
			t.Errorf("chimbuko-ad needs %q, %v", missing, err)
		}
		if info, err := os.Stat(alone); err != nil || info.Size() > 20e6 {
			t.Errorf("chimbuko-ad: %v bytes, %v; want less than 20 MB", info.Size(), err)
		}
	})
}

// A program that is linked on this machine as C++ programs usually are.
func TestLibrariesAndNewerVersionsAreReported(t *testing.T) {
	tracetest.SkipShort(t, "runs a compiler")
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	source := filepath.Join(t.TempDir(), "program.cc")
	text := "#include <iostream>\nint main() { std::cout << \"text\"; try { throw 1; } catch (int) {} }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program")
	run(t, compiler, "-o", program, source)
	missing, err := Missing(program, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"libstdc++.so", "libgcc_s.so", "GLIBC_2."} {
		if !slices.ContainsFunc(missing, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("Missing(program, 2) = %q, want also %s", missing, want)
		}
	}
	for _, c := range []struct {
		library, version string
		want             bool
	}{
		{"libc.so.6", "GLIBC_2.28", true},
		{"libc.so.6", "GLIBC_2.2.5", true},
		{"libm.so.6", "GLIBC_2.29", false},
		{"libc.so.6", "GLIBC_2.34", false},
		{"libc.so.6", "GLIBC_ABI_DT_RELR", false},
		{"libc.so.6", "GLIBC_PRIVATE", false},
	} {
		if got := provides(c.library, c.version, 28); got != c.want {
			t.Errorf("glibc 2.28 provides %s of %s: %v, want %v", c.version, c.library, got, c.want)
		}
	}
}

const documents = "share/doc/chimbuko/"

func TestArchiveIsComplete(t *testing.T) {
	eachArchive(t, func(t *testing.T, a *archive) {
		for _, file := range []string{
			"bin/chimbuko", "bin/chimbuko-ad", "share/man/man1/chimbuko.1.gz", "share/man/man1/chimbuko-analyze.1.gz",
			"share/bash-completion/completions/chimbuko", "share/zsh/site-functions/_chimbuko", "share/fish/vendor_completions.d/chimbuko.fish",
			documents + "README.md", documents + "CHANGELOG.md", documents + "LICENSE",
			documents + "sbom.cdx.json", documents + "licenses/third-party.md", documents + "licenses/duckdb/zstd/LICENSE",
			documents + "licenses/duckdb/icu/LICENSE", documents + "licenses/duckdb/libpg_query/LICENSE", documents + "systemd/chimbuko-nats.service",
		} {
			if info, err := os.Stat(filepath.Join(a.root, file)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v, or empty", file, err)
			}
		}
		for file, mode := range a.mode {
			want := os.FileMode(0o644)
			if strings.HasPrefix(file, "bin/") {
				want = 0o755
			}
			if mode != want {
				t.Errorf("%s has mode %v, want %v", file, mode, want)
			}
		}
	})
}

// The program records its modules: each has a license and is in the bill of materials.
func TestModulesHaveLicenses(t *testing.T) {
	eachArchive(t, func(t *testing.T, a *archive) {
		info, err := buildinfo.ReadFile(filepath.Join(a.root, "bin", "chimbuko"))
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			Metadata   struct{ Component struct{ Version string } }
			Components []struct{ Name, Version string }
		}
		content, err := os.ReadFile(filepath.Join(a.root, documents, "sbom.cdx.json"))
		if err == nil {
			err = json.Unmarshal(content, &bill)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := bill.Metadata.Component.Version; got != version.Number {
			t.Errorf("bill of materials: version %q, want %q", got, version.Number)
		}
		listed := map[string]bool{}
		for _, c := range bill.Components {
			listed[c.Name+"@"+c.Version] = true
		}
		if len(info.Deps) < 20 {
			t.Fatalf("the program has %d modules", len(info.Deps))
		}
		for _, m := range info.Deps {
			name := m.Path + "@" + m.Version
			if !listed[name] {
				t.Errorf("bill of materials: no %s", name)
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(a.mode)), func(file string) bool {
				return path.Dir(file) == documents+"licenses/go/"+name
			}) {
				t.Errorf("no license of %s", name)
			}
		}
	})
}

func TestChecksums(t *testing.T) {
	dir := dist(t)
	content, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(content)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if file.Name() == "SHA256SUMS" || file.IsDir() {
			continue
		}
		f, err := os.Open(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			t.Fatal(err)
		}
		f.Close() //nolint:errcheck,gosec // only read
		if want := hex.EncodeToString(h.Sum(nil)); sums[file.Name()] != want {
			t.Errorf("SHA256SUMS: %s has %q, want %s", file.Name(), sums[file.Name()], want)
		}
	}
}

func TestPackagesHaveTheFilesOfTheArchive(t *testing.T) {
	eachArchive(t, func(t *testing.T, a *archive) {
		for kind, list := range map[string]func(t *testing.T, file string) []string{"deb": debFiles, "rpm": rpmFiles} {
			t.Run(kind, func(t *testing.T) {
				files := list(t, filepath.Join(dist(t), a.name+"."+kind))
				for file := range a.mode {
					if !slices.Contains(files, "/usr/"+file) {
						t.Errorf("no /usr/%s", file)
					}
				}
			})
		}
	})
}

func debFiles(t *testing.T, file string) (files []string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skipf("SKIP: DEB PACKAGE NOT TESTED: %v", err)
	}
	if got := strings.TrimSpace(run(t, "dpkg-deb", "--field", file, "Version")); got != strings.Replace(version.Number, "-", "~", 1) {
		t.Errorf("version %q, want %q", got, version.Number)
	}
	for line := range strings.Lines(run(t, "dpkg-deb", "--contents", file)) {
		fields := strings.Fields(line)
		files = append(files, strings.TrimPrefix(fields[5], "."))
	}
	return files
}

func rpmFiles(t *testing.T, file string) []string {
	t.Helper()
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skipf("SKIP: RPM PACKAGE NOT TESTED: %v", err)
	}
	database := "--dbpath=" + t.TempDir()
	if got := run(t, "rpm", database, "-qp", "--queryformat", "%{VERSION}", file); got != strings.Replace(version.Number, "-", "~", 1) {
		t.Errorf("version %q, want %q", got, version.Number)
	}
	return strings.Fields(run(t, "rpm", database, "-qpl", file))
}

func TestWheelHasAllLicenses(t *testing.T) {
	eachArchive(t, func(t *testing.T, a *archive) {
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[a.arch]
		wheels, err := filepath.Glob(filepath.Join(dist(t), "chimbuko-*manylinux_2_28_"+machine+".whl"))
		if err != nil || len(wheels) != 1 {
			t.Fatalf("wheels %q, %v", wheels, err)
		}
		z, err := zip.OpenReader(wheels[0])
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close() //nolint:errcheck // only read
		names := map[string]bool{}
		for _, f := range z.File {
			_, inside, _ := strings.Cut(f.Name, ".dist-info/licenses/")
			names[inside] = true
		}
		for file := range a.mode {
			if inside, ok := strings.CutPrefix(file, documents+"licenses/"); ok && !names["third-party/"+inside] {
				t.Errorf("%s has no %s", filepath.Base(wheels[0]), inside)
			}
		}
	})
}

func TestProgramsPrintTheVersion(t *testing.T) {
	eachArchive(t, func(t *testing.T, a *archive) {
		if a.arch != runtime.GOARCH {
			t.Skipf("SKIP: PROGRAMS FOR %s NOT RUN: this machine cannot", strings.ToUpper(a.arch))
		}
		for name, want := range map[string]string{
			"chimbuko":    "chimbuko version " + version.Number + " (",
			"chimbuko-ad": "chimbuko-ad version " + version.Number + " (",
		} {
			if got := run(t, filepath.Join(a.root, "bin", name), "--version"); !strings.HasPrefix(got, want) {
				t.Errorf("%s --version printed %q, want %q", name, got, want)
			}
		}
	})
}

// The release program works, and runs and reports name its version.
func TestResultsHaveTheVersion(t *testing.T) {
	eachArchive(t, func(t *testing.T, a *archive) {
		if a.arch != runtime.GOARCH {
			t.Skipf("SKIP: PROGRAMS FOR %s NOT RUN: this machine cannot", strings.ToUpper(a.arch))
		}
		program, dir := filepath.Join(a.root, "bin", "chimbuko"), t.TempDir()
		traces, result, page := filepath.Join(dir, "traces"), filepath.Join(dir, "run"), filepath.Join(dir, "report.html")
		run(t, program, "simulate", "--scenario", "normal", "--out", traces)
		run(t, program, "analyze", traces, "--out", result)
		run(t, program, "report", result, "-o", page)
		for file, want := range map[string]string{
			filepath.Join(result, "run.json"): `"version": "` + version.Number + `"`,
			page:                              "chimbuko " + version.Number,
		} {
			if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), want) {
				t.Errorf("%s has no %s, %v", filepath.Base(file), want, err)
			}
		}
	})
}

func TestVersionsAgree(t *testing.T) {
	if got := find(t, `(?m)^version = "(.*)"`, "python", "pyproject.toml"); got != version.Number {
		t.Errorf("python/pyproject.toml has version %q, want %q", got, version.Number)
	}
	if released := !strings.Contains(version.Number, "-"); released {
		if got := find(t, `(?m)^## (\d.*?)( - .*)?$`, "CHANGELOG.md"); got != version.Number {
			t.Errorf("the last version in CHANGELOG.md is %q, want %q", got, version.Number)
		}
	}
}
