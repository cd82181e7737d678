//! Hosts on one machine: network namespaces on one bridge, each with its own host name.
//!
//! If the kernel does not permit that, hosts are plain processes on the loopback address, and a
//! warning is printed. Such a host cannot be cut off; its processes are stopped instead, which
//! looks the same to all others.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A bridge and its hosts, removed on drop.
pub struct Network {
    bridge: Option<String>,
    /// `10.200.7`: the first three numbers of every address.
    net: String,
}

pub struct Host {
    pub name: String,
    space: Option<String>,
}

static MADE: AtomicU32 = AtomicU32::new(0);

impl Network {
    pub fn new() -> Network {
        let number = std::process::id() % 5000 * 10 + MADE.fetch_add(1, Ordering::Relaxed);
        let bridge = format!("qb{number}");
        let net = format!("10.{}.{}", 100 + number / 250 % 150, number % 250);
        match ip(&format!("link add {bridge} type bridge"))
            .and_then(|()| ip(&format!("addr add {net}.1/24 dev {bridge}")))
            .and_then(|()| ip(&format!("link set {bridge} up")))
            .and_then(|()| Host::make(&bridge, &net, 254, "probe"))
        {
            Ok(_probe) => Network {
                bridge: Some(bridge),
                net,
            },
            Err(why) => {
                let _ = ip(&format!("link del {bridge}"));
                eprintln!(
                    "\n=== NETWORK NAMESPACES ARE NOT PERMITTED HERE ({why}): hosts are plain processes on 127.0.0.1 ===\n"
                );
                Network {
                    bridge: None,
                    net: "127.0.0".into(),
                }
            }
        }
    }

    /// Whether hosts are separate network namespaces.
    pub fn is_real(&self) -> bool {
        self.bridge.is_some()
    }

    /// Returns the address of this machine as seen from every host.
    pub fn address(&self) -> String {
        format!("{}.1", self.net)
    }

    pub fn host(&self, number: u32, name: &str) -> Host {
        match &self.bridge {
            Some(bridge) => Host::make(bridge, &self.net, number + 1, name)
                .expect("the probe could be made too"),
            None => Host {
                name: name.to_owned(),
                space: None,
            },
        }
    }
}

impl Default for Network {
    fn default() -> Network {
        Network::new()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(bridge) = &self.bridge {
            let _ = ip(&format!("link del {bridge}"));
        }
    }
}

impl Host {
    fn make(bridge: &str, net: &str, number: u32, name: &str) -> Result<Host, String> {
        let space = format!("{bridge}-{number}");
        let _ = ip(&format!("netns del {space}"));
        ip(&format!("netns add {space}"))?;
        let host = Host {
            name: name.to_owned(),
            space: Some(space.clone()),
        };
        let outer = host.outer();
        ip(&format!(
            "link add {outer} type veth peer name eth0 netns {space}"
        ))?;
        ip(&format!("link set {outer} master {bridge} up"))?;
        ip(&format!("-n {space} addr add {net}.{number}/24 dev eth0"))?;
        ip(&format!("-n {space} link set eth0 up"))?;
        ip(&format!("-n {space} link set lo up"))?;
        // A separate host name must be possible, too.
        let named = host
            .command("true")
            .stdin(Stdio::null())
            .status()
            .map_err(|e| e.to_string())?;
        if named.success() {
            Ok(host)
        } else {
            Err("a host cannot be given a name".into())
        }
    }

    /// Returns the name of its veth end on the bridge.
    fn outer(&self) -> String {
        self.space.as_deref().unwrap_or_default().replace('-', "e")
    }

    /// Builds a command for a program on this host. The child is the program itself, without a
    /// wrapper, so that it can be killed.
    pub fn command(&self, program: &str) -> Command {
        let Some(space) = &self.space else {
            return Command::new(program);
        };
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            space,
            "unshare",
            "--uts",
            "sh",
            "-c",
            "echo \"$0\" > /proc/sys/kernel/hostname; exec \"$@\"",
        ]);
        command.args([self.name.as_str(), program]);
        command
    }

    /// Cuts the network: packets are dropped without notice. If hosts are not real, their processes
    /// are stopped.
    pub fn cut(&self, processes: &[u32]) {
        match self.space {
            Some(_) => ip(&format!("link set {} down", self.outer())).unwrap(),
            None => signal("-STOP", processes),
        }
    }

    pub fn rejoin(&self, processes: &[u32]) {
        match self.space {
            Some(_) => ip(&format!("link set {} up", self.outer())).unwrap(),
            None => signal("-CONT", processes),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(space) = &self.space {
            let _ = ip(&format!("netns del {space}"));
        }
    }
}

fn signal(name: &str, processes: &[u32]) {
    for process in processes {
        let _ = Command::new("kill")
            .args([name, &process.to_string()])
            .status();
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "ip {arguments}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}
