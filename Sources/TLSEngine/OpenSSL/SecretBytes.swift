import COpenSSL

/// Bytes that nobody may find later: wiped before their memory is given back.
@safe
package struct SecretBytes: ~Copyable {
    let start: UnsafeMutableRawPointer
    let count: Int

    /// `count` zeros, at least one.
    init(count: Int) {
        unsafe self.start = UnsafeMutableRawPointer.allocate(byteCount: max(1, count), alignment: 8)
        self.count = count
        unsafe self.start.initializeMemory(as: UInt8.self, repeating: 0, count: count)
    }

    package init(_ bytes: [UInt8]) {
        self.init(count: bytes.count)
        unsafe bytes.withUnsafeBytes { source in
            guard let from = source.baseAddress else { return }
            unsafe self.start.copyMemory(from: from, byteCount: source.count)
        }
    }

    deinit {
        unsafe OPENSSL_cleanse(self.start, self.count)
        unsafe self.start.deallocate()
    }
}
