//! TLS for the connection to PostgreSQL.
//!
//! The server has to prove its name: by default with a public certificate authority, or with a
//! certificate in the file that the address names.

use std::path::Path;
use std::sync::Arc;

use quipu_store::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) fn connector(roots: Option<&Path>) -> Result<MakeRustlsConnect, StoreError> {
    let mut trusted = RootCertStore::empty();
    match roots {
        None => trusted.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(file) => {
            let unreadable = |what: String| {
                StoreError::refused(
                    format!(
                        "`{}` contains no certificate that can be trusted: {what}",
                        file.display()
                    ),
                    "sslrootcert=FILE.pem",
                )
            };
            for found in
                CertificateDer::pem_file_iter(file).map_err(|e| unreadable(e.to_string()))?
            {
                trusted
                    .add(found.map_err(|e| unreadable(e.to_string()))?)
                    .map_err(|e| unreadable(e.to_string()))?;
            }
            if trusted.is_empty() {
                return Err(unreadable("it is empty".into()));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| {
            StoreError::refused(
                format!("TLS cannot be used: {e}"),
                "set sslmode=disable, if the network is your own",
            )
        })?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
