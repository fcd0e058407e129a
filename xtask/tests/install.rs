//! The script that installs a release archive: without Rust, Go, Node.js or any program besides
//! coreutils, tar and gzip.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use xtask::package::{Architecture, Args, archive, image, sums};
use xtask::workspace;

/// The programs of coreutils that the script uses, tar and gzip.
const PROGRAMS: [&str; 13] = [
    "cat",
    "cp",
    "dirname",
    "gzip",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "rmdir",
    "sha256sum",
    "tar",
    "uname",
    "true",
];

/// A program that prints its version.
const PAVED: &str = "#!/bin/sh\necho paved 9.9.9\n";

/// The installed files that are not manual pages.
const INSTALLED: [&str; 5] = [
    "bin/paved",
    "share/bash-completion/completions/paved",
    "share/fish/vendor_completions.d/paved.fish",
    "share/paved-road/installed",
    "share/zsh/site-functions/_paved",
];

/// A machine with a release: the folders `programs`, `release` and `home`.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        Self::with_program(PAVED)
    }

    fn with_program(program: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for folder in ["programs", "release", "home"] {
            fs::create_dir(machine.path(folder)).unwrap();
        }
        for program in PROGRAMS {
            machine.add(program);
        }
        let args = Args { debug: true, ..Args::default() };
        let release = machine.path("release");
        let binary = program.as_bytes().to_vec();
        let archive =
            archive::pack(&args, Architecture::host(), binary, "licenses".to_owned(), &release);
        let files = [archive.unwrap(), archive::installer(&args, &release).unwrap()];
        sums::write(&release, &files).unwrap();
        machine
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Adds a program of this machine.
    fn add(&self, program: &str) {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(program));
        let found = found.iter().find(|path| path.exists());
        let found = found.unwrap_or_else(|| panic!("{program} is not installed"));
        symlink(found, self.path("programs").join(program)).unwrap();
    }

    /// Runs the script of the repository.
    fn run(&self, args: &[&str]) -> Output {
        self.run_script(&workspace::root().join("package/install.sh"), args)
    }

    fn run_script(&self, script: &Path, args: &[&str]) -> Output {
        let mut shell = Command::new("/bin/sh");
        shell.arg(script).args(args).current_dir(self.0.path()).env_clear();
        shell.env("HOME", self.path("home")).env("PATH", self.path("programs"));
        shell.output().unwrap()
    }

    /// Runs the script, which must fail with this error and install nothing.
    fn assert_rejected(&self, args: &[&str], error: &str) {
        let before = files(&self.path("home"));
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert!(text.contains(error), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(files(&self.path("home")), before, "{args:?}");
    }

    fn archive(&self) -> PathBuf {
        self.path("release").join(format!("{}.tar.gz", archive::name(Architecture::host())))
    }

    /// The folder of the unpacked archive.
    fn unpack(&self) -> PathBuf {
        let content = fs::File::open(self.archive()).unwrap();
        let content = flate2::read::GzDecoder::new(content);
        tar::Archive::new(content).unpack(self.0.path()).unwrap();
        self.path(&archive::name(Architecture::host()))
    }

    /// Packs the folder of the unpacked archive again, with its new digest.
    fn pack(&self, name: &str) {
        let mut tar = tar::Builder::new(Vec::new());
        tar.append_dir_all(name, self.path(&archive::name(Architecture::host()))).unwrap();
        let content = image::gzip(&tar.into_inner().unwrap(), image::Effort::Quick).unwrap();
        fs::write(self.archive(), content).unwrap();
        sums::write(&self.path("release"), &[self.archive()]).unwrap();
    }
}

/// The paths of all files below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

#[test]
fn release_is_installed_twice_and_removed_twice() {
    let machine = Machine::new();
    let mut installed = Vec::new();
    for _ in 0..2 {
        let output = machine.run(&["release"]);
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains("installed paved 9.9.9"), "{}", text(&output));
        assert!(text(&output).contains("cosign is not installed"), "{}", text(&output));
        installed.push(files(&machine.path("home/.local")));
    }
    assert_eq!(installed[0], installed[1]);
    let is_page = |path: &&String| path.starts_with("share/man/man1/paved");
    let others: Vec<&str> =
        installed[0].iter().filter(|path| !is_page(path)).map(String::as_str).collect();
    assert_eq!(others, INSTALLED);
    assert!(installed[0].iter().filter(is_page).count() > 10);

    // Another file in the same folders stays.
    fs::write(machine.path("home/.local/bin/other"), "").unwrap();
    for expected in ["removed paved", "paved is not installed"] {
        let output = machine.run(&["--uninstall"]);
        assert!(output.status.success() && text(&output).contains(expected), "{}", text(&output));
        assert_eq!(files(&machine.path("home")), [".local/bin/other".to_owned()].into());
    }
}

#[test]
fn archive_unpacked_archive_and_its_own_script_install_the_same() {
    let machine = Machine::new();
    let unpacked = machine.unpack();
    let archive = machine.archive();
    let own = unpacked.join(archive::INSTALLER);
    let mut found = Vec::new();
    for (prefix, output) in [
        ("archive", machine.run(&["--prefix", "archive", archive.to_str().unwrap()])),
        ("folder", machine.run(&["--prefix=folder", unpacked.to_str().unwrap()])),
        ("own", machine.run_script(&own, &["--prefix", "own"])),
    ] {
        assert!(output.status.success(), "{}", text(&output));
        found.push(files(&machine.path(prefix)));
    }
    assert!(found[0].contains("bin/paved") && found.iter().all(|one| *one == found[0]));
}

#[test]
fn later_version_replaces_the_files_of_an_earlier_one() {
    let machine = Machine::new();
    assert!(machine.run(&["release"]).status.success());
    let (page, record) = ("share/man/man1/paved-old.1", "share/paved-road/installed");
    let home = machine.path("home/.local");
    fs::write(home.join(page), "").unwrap();
    let list = fs::read_to_string(home.join(record)).unwrap();
    fs::write(home.join(record), format!("{list}{page}\n")).unwrap();
    fs::write(home.join("bin/paved"), "earlier").unwrap();
    assert!(machine.run(&["release"]).status.success());
    assert!(!home.join(page).exists());
    assert_eq!(fs::read_to_string(home.join("bin/paved")).unwrap(), PAVED);
    assert_eq!(fs::read_to_string(home.join(record)).unwrap(), list);
}

#[test]
fn wrong_or_missing_checksum_installs_nothing() {
    let machine = Machine::new();
    let sums = machine.path("release").join(sums::FILE);
    let mut content = fs::read(machine.archive()).unwrap();
    content.push(0);
    fs::write(machine.archive(), content).unwrap();
    machine.assert_rejected(&["release"], "wrong checksum of paved-linux-");
    fs::write(&sums, "00  another\n").unwrap();
    machine.assert_rejected(&["release"], "SHA256SUMS has no checksum of paved-linux-");
    fs::remove_file(&sums).unwrap();
    machine.assert_rejected(&["release"], "SHA256SUMS does not exist");
    machine.assert_rejected(&["nowhere"], "nowhere does not exist");
}

#[test]
fn archive_for_another_platform_installs_nothing() {
    let machine = Machine::new();
    let other = match Architecture::host() {
        Architecture::Amd64 => Architecture::Arm64,
        Architecture::Arm64 => Architecture::Amd64,
    };
    let other = archive::name(other);
    let renamed = machine.path("release").join(format!("{other}.tar.gz"));
    fs::copy(machine.archive(), &renamed).unwrap();
    machine.assert_rejected(&[renamed.to_str().unwrap()], "is for another platform");
    // The name is right, and the content is not.
    machine.unpack();
    machine.pack(&other);
    machine.assert_rejected(&["release"], "has no folder paved-linux-");
}

#[test]
fn program_for_another_machine_installs_nothing() {
    let machine = Machine::with_program("\u{7f}ELF of another machine");
    machine.assert_rejected(&["release"], "program does not run on this machine");
}

#[test]
fn missing_or_changed_file_installs_nothing() {
    let machine = Machine::new();
    let unpacked = machine.unpack();
    let name = archive::name(Architecture::host());
    fs::write(unpacked.join("LICENSE"), "changed").unwrap();
    machine.assert_rejected(&[unpacked.to_str().unwrap()], "missing or changed");
    machine.pack(&name);
    machine.assert_rejected(&["release"], "missing or changed");
    fs::remove_file(unpacked.join("completions/_paved")).unwrap();
    machine.assert_rejected(&[unpacked.to_str().unwrap()], "lacks completions/_paved");
    machine.pack(&name);
    machine.assert_rejected(&["release"], "lacks completions/_paved");
}

#[test]
fn folder_without_permission_is_named_with_the_flag() {
    let machine = Machine::new();
    fs::write(machine.path("home/file"), "").unwrap();
    let hint = "Choose a folder that you can write to with --prefix";
    for prefix in ["home/file", "home/file/below", "/proc/paved"] {
        machine.assert_rejected(&["--prefix", prefix, "release"], hint);
    }
    // The folder of one file cannot be created, so no file is installed.
    fs::create_dir_all(machine.path("home/half/share")).unwrap();
    fs::write(machine.path("home/half/share/zsh"), "").unwrap();
    machine.assert_rejected(&["--prefix", "home/half", "release"], hint);
    fs::create_dir_all(machine.path("home/folder/bin/paved")).unwrap();
    machine.assert_rejected(&["--prefix", "home/folder", "release"], "bin/paved is a folder");
}

#[test]
fn wrong_flag_is_rejected_before_anything_is_written() {
    let machine = Machine::new();
    for (args, error) in [
        (vec!["--perfix", "x"], "--perfix: unknown flag; allowed: --prefix"),
        (vec!["--prefix"], "--prefix: a value is missing"),
        (vec!["--prefix=", "release"], "--prefix: found nothing"),
        (vec!["release", "more"], "one SOURCE is allowed"),
        (vec!["--key", "cosign.pub", "release"], "--key needs cosign"),
    ] {
        machine.assert_rejected(&args, error);
    }
    let help = machine.run(&["--help"]);
    assert!(help.status.success() && text(&help).contains("--uninstall"), "{}", text(&help));
}

#[test]
fn record_with_a_foreign_path_removes_no_file() {
    let machine = Machine::new();
    assert!(machine.run(&["release"]).status.success());
    let record = machine.path("home/.local/share/paved-road/installed");
    fs::write(machine.path("home/precious"), "").unwrap();
    for path in ["../precious", "share/../../precious", "/precious", "etc/x", ""] {
        fs::write(&record, format!("{path}\n")).unwrap();
        let output = machine.run(&["--uninstall"]);
        assert!(!output.status.success(), "{path}: {}", text(&output));
        assert!(machine.path("home/precious").exists(), "{path}");
    }
}

#[test]
fn release_on_loopback_is_downloaded_and_checked() {
    let machine = Machine::new();
    machine.add("curl");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let folder = machine.path("release");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let answer = fs::read(folder.join(path.trim_start_matches('/')));
            let status = if answer.is_ok() { "200 OK" } else { "404 Not Found" };
            let body = answer.unwrap_or_default();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    let folder = format!("http://{address}");
    let archive = format!("{folder}/{}.tar.gz", archive::name(Architecture::host()));
    for url in [&folder, &archive] {
        let output = machine.run(&["--prefix", "prefix", url]);
        assert!(output.status.success(), "{}", text(&output));
        assert!(machine.path("prefix/bin/paved").exists());
    }
    let missing = machine.run(&["--prefix", "home/x", &format!("{folder}/none")]);
    assert!(text(&missing).contains("could not download"), "{}", text(&missing));
    fs::write(machine.archive(), "changed").unwrap();
    machine.assert_rejected(&["--prefix", "home/x", &folder], "wrong checksum of paved-linux-");
    assert!(!machine.path("home/x").exists());
}
