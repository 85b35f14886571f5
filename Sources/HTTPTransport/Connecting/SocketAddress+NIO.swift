import NIOCore
import StreamTransport

extension NIOCore.SocketAddress {
    /// - Returns: `nil` for a Unix socket.
    init?(_ address: StreamTransport.SocketAddress) {
        var bytes = ByteBuffer()
        let port: UInt16
        switch address {
        case .ipv4(let number, let given):
            bytes.writeInteger(number)
            port = given
        case .ipv6(let high, let low, _, let given):
            bytes.writeInteger(high)
            bytes.writeInteger(low)
            port = given
        case .unix: return nil
        }
        guard let made = try? NIOCore.SocketAddress(packedIPAddress: bytes, port: Int(port)) else { return nil }
        self = made
    }
}

extension StreamTransport.SocketAddress {
    init?(_ address: NIOCore.SocketAddress) {
        guard let text = address.ipAddress, let port = address.port else { return nil }
        self.init(literal: text, port: UInt16(clamping: port))
    }
}
