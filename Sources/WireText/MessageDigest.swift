import ByteKernels
import COpenSSL

/// Incremental message digest by libcrypto.
///
/// MD5 and SHA-1 are for protocols that require them and do not depend on collision resistance: Digest authentication
/// (RFC 7616) and `Sec-WebSocket-Accept` (RFC 6455 §10.8). Should libcrypto refuse an algorithm (by policy) or lack
/// memory, the digest is all zeros, which no peer accepts.
package struct MessageDigest: Sendable {
    package enum Algorithm: Sendable {
        case md5
        case sha1
        case sha256
        /// SHA-512/256, which is not SHA-512 cut to 256 bits (FIPS 180-4 §6.7).
        case sha512Truncated

        /// Length of the digest in bytes.
        package var byteCount: Int {
            switch self {
            case .md5: 16
            case .sha1: 20
            case .sha256, .sha512Truncated: 32
            }
        }

        fileprivate var name: String {
            switch self {
            case .md5: "MD5"
            case .sha1: "SHA1"
            case .sha256: "SHA256"
            case .sha512Truncated: "SHA512-256"
            }
        }

        fileprivate var implementation: Implementation {
            switch self {
            case .md5: .md5
            case .sha1: .sha1
            case .sha256: .sha256
            case .sha512Truncated: .sha512Truncated
            }
        }
    }

    private let algorithm: Algorithm
    /// Shared by copies until one is updated.
    private var context: Context

    package init(_ algorithm: Algorithm) {
        self.algorithm = algorithm
        self.context = Context(algorithm)
    }

    package static func of(_ bytes: [UInt8], by algorithm: Algorithm) -> [UInt8] {
        var digest = MessageDigest(algorithm)
        bytes.withRawSpan { digest.update($0) }
        return digest.finalize()
    }

    package mutating func update(_ bytes: RawSpan) {
        if !isKnownUniquelyReferenced(&self.context) { self.context = Context(copying: self.context) }
        self.context.update(bytes)
    }

    /// The digest of all bytes so far; more may follow.
    package func finalize() -> [UInt8] {
        Context(copying: self.context).finalize(byteCount: self.algorithm.byteCount)
    }
}

/// Owns an `EVP_MD`.
@safe private final class Implementation: Sendable {
    // Looking an algorithm up takes libcrypto longer than a short digest: once for each.
    static let md5 = Implementation(.md5)
    static let sha1 = Implementation(.sha1)
    static let sha256 = Implementation(.sha256)
    static let sha512Truncated = Implementation(.sha512Truncated)

    /// Immutable: any thread may use it.
    nonisolated(unsafe) let handle: OpaquePointer?

    init(_ algorithm: MessageDigest.Algorithm) {
        sluice_openssl_start()
        unsafe self.handle = EVP_MD_fetch(nil, algorithm.name, nil)
    }
}

/// Owns an `EVP_MD_CTX`.
@safe private final class Context: Sendable {
    /// `MessageDigest` changes only a context that no other copy refers to.
    nonisolated(unsafe) private let handle: OpaquePointer?

    init(_ algorithm: MessageDigest.Algorithm) {
        let context = unsafe EVP_MD_CTX_new()
        if unsafe EVP_DigestInit_ex2(context, algorithm.implementation.handle, nil) == 1 {
            unsafe self.handle = context
        } else {
            unsafe EVP_MD_CTX_free(context)
            unsafe self.handle = nil
        }
    }

    init(copying other: Context) {
        let context = unsafe EVP_MD_CTX_new()
        if unsafe other.handle != nil, unsafe EVP_MD_CTX_copy_ex(context, other.handle) == 1 {
            unsafe self.handle = context
        } else {
            unsafe EVP_MD_CTX_free(context)
            unsafe self.handle = nil
        }
    }

    deinit {
        unsafe EVP_MD_CTX_free(self.handle)
    }

    func update(_ bytes: RawSpan) {
        guard unsafe self.handle != nil else { return }
        unsafe bytes.withUnsafeBytes { unsafe _ = EVP_DigestUpdate(self.handle, $0.baseAddress, $0.count) }
    }

    func finalize(byteCount: Int) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: max(byteCount, Int(EVP_MAX_MD_SIZE)))
        if unsafe self.handle != nil {
            unsafe digest.withUnsafeMutableBufferPointer { buffer in
                unsafe _ = EVP_DigestFinal_ex(self.handle, buffer.baseAddress, nil)
            }
        }
        return Array(digest.prefix(byteCount))
    }
}
