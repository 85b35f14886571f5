import COpenSSL

/// OpenSSL's libcrypto, which all of the process shares.
package enum CryptoLibrary {
    /// Starts the library in such a way that it is not torn down at the process's exit, under threads that still use it. Call
    /// before any other library that uses it, such as a plug-in, could start it differently.
    package static func start() {
        sluice_openssl_start()
    }
}
