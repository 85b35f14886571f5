import StreamTransport

/// A listening socket that the service manager opened for us.
package struct PassedSocket: Sendable, Hashable {
    /// From its `FileDescriptorName=`; empty where none was given.
    package let name: String
    package let descriptor: Descriptor

    package init(name: String, descriptor: Descriptor) {
        self.name = name
        self.descriptor = descriptor
    }
}

extension AdoptedSocket {
    func find(in sockets: [PassedSocket]) -> Descriptor? {
        switch self {
        case .name(let name): sockets.first { $0.name == name }?.descriptor
        case .index(let index): sockets.indices.contains(index) ? sockets[index].descriptor : nil
        }
    }
}

extension ListenAddress {
    /// Whether every loop has a socket of its own on the address (`SO_REUSEPORT`), rather than all of them one.
    var opensOnEachLoop: Bool {
        switch self {
        case .tcp, .tcpAny: true
        case .unix, .adopted: false
        }
    }
}
