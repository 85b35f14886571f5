import ByteKernels

/// A message of the kernel about its routes, addresses or interfaces, as far as connections care (rtnetlink(7)).
package enum RouteMessage: Hashable, Sendable {
    /// An interface was added or has changed; `flags` are those of netdevice(7).
    case link(interface: UInt32, flags: UInt32)
    case linkRemoved(interface: UInt32)
    /// An address was added, has changed or was removed.
    case address(interface: UInt32, isUsable: Bool)
    /// A route was added, has changed or was removed, or a rule; also the answer to a question. `nil` of a rule and of a
    /// removed route.
    case route(Route?)
    /// As `route`, of one that leads nowhere.
    case barrier
    /// A question was refused.
    /// - Parameter error: the system's error number, positive; 0 for an acknowledgement.
    case failure(Int32)
    /// The kernel has lost messages.
    case overrun
    /// Nothing of interest.
    case other
}

/// How the kernel would send packets to an address now.
package struct Route: Hashable, Sendable {
    /// The interface's index; 0 if it is unknown.
    package var interface: UInt32
    /// The address that packets would come from, with port 0; `nil` without one.
    package var source: SocketAddress?

    package init(interface: UInt32, source: SocketAddress? = nil) {
        self.interface = interface
        self.source = source
    }
}

/// Reads the messages of one datagram. Lengths that do not fit end it with `.overrun`, because the rest cannot be read.
package struct RouteMessages {
    /// nlmsghdr.
    private static let headLength = 16

    private var offset = 0

    package init() {}

    /// - Returns: `nil` at the end of `bytes`, which must be the same in all calls.
    package mutating func next(in bytes: RawSpan) -> RouteMessage? {
        let left = bytes.byteCount - self.offset
        guard left > 0 else { return nil }
        guard left >= Self.headLength else { return self.lost(bytes) }
        let length = Int(bytes.unaligned(self.offset, as: UInt32.self))
        guard length >= Self.headLength, length <= left else { return self.lost(bytes) }
        let type = bytes.unaligned(self.offset + 4, as: UInt16.self)
        let body = bytes.extracting((self.offset + Self.headLength)..<(self.offset + length))
        // Each message begins at a multiple of four bytes.
        self.offset += min(left, (length + 3) & ~3)
        return Self.message(type, body) ?? .overrun
    }

    private mutating func lost(_ bytes: RawSpan) -> RouteMessage {
        self.offset = bytes.byteCount
        return .overrun
    }

    /// - Returns: `nil` if the body is too short for its type.
    private static func message(_ type: UInt16, _ body: RawSpan) -> RouteMessage? {
        switch type {
        case 2: self.failure(body)
        case 4: .overrun
        case 16: self.link(body)
        case 17: self.link(body).map { if case .link(let index, _) = $0 { .linkRemoved(interface: index) } else { $0 } }
        case 20, 21: self.address(body)
        case 24: self.route(body)
        case 25, 32, 33: .route(nil)
        default: .other
        }
    }

    /// nlmsgerr: a negated error number, then the question.
    private static func failure(_ body: RawSpan) -> RouteMessage? {
        guard body.byteCount >= 4 else { return nil }
        let number = body.unaligned(0, as: Int32.self)
        return .failure(number == .min ? .max : abs(number))
    }

    /// ifinfomsg.
    private static func link(_ body: RawSpan) -> RouteMessage? {
        guard body.byteCount >= 16 else { return nil }
        return .link(interface: body.unaligned(4, as: UInt32.self), flags: body.unaligned(8, as: UInt32.self))
    }

    /// ifaddrmsg. IFA_F_TENTATIVE: an IPv6 address cannot be used until the kernel knows it to be unique (RFC 4862 §5.4).
    private static func address(_ body: RawSpan) -> RouteMessage? {
        guard body.byteCount >= 8 else { return nil }
        return .address(interface: body.unaligned(4, as: UInt32.self), isUsable: body[byte: 2] & 0x40 == 0)
    }

    /// rtmsg with its attributes.
    private static func route(_ body: RawSpan) -> RouteMessage? {
        guard body.byteCount >= 12 else { return nil }
        let family = body[byte: 0]
        // RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT and RTN_THROW.
        if (6...9).contains(body[byte: 7]) { return .barrier }
        var route = Route(interface: 0)
        var attributes = RouteAttributes(12)
        while let (type, range) = attributes.next(in: body) {
            let value = body.extracting(range)
            switch type {
            // RTA_OIF and RTA_PREFSRC.
            case 4 where value.byteCount == 4: route.interface = value.unaligned(0, as: UInt32.self)
            case 7: route.source = SocketAddress(family: family, value)
            default: break
            }
        }
        return .route(route)
    }

    /// The question how packets for `address` would be sent (RTM_GETROUTE).
    /// - Parameters:
    ///   - interface: only through this one; `nil` for any.
    ///   - wantsEntry: asks for the entry of the table instead (RTM_F_FIB_MATCH): without it the kernel takes any address
    ///     for one of the interface's own network if no route fits.
    /// - Returns: `nil` for a Unix socket.
    package static func question(
        _ address: SocketAddress, through interface: UInt32? = nil, wantsEntry: Bool = false
    ) -> [UInt8]? {
        guard let destination = address.networkBytes else { return nil }
        // rtmsg: family, length of the destination in bits; six bytes of 0; flags.
        var body: [UInt8] = [destination.count == 4 ? 2 : 10, UInt8(8 * destination.count)]
        body += [UInt8](repeating: 0, count: 6) + Self.bytes(UInt32(wantsEntry ? 0x2000 : 0))
        body += Self.attribute(1, destination)
        if let interface = interface ?? address.scopeInterface { body += Self.attribute(4, Self.bytes(interface)) }
        let head = Self.bytes(UInt32(Self.headLength + body.count)) + Self.bytes(UInt16(26)) + Self.bytes(UInt16(1))
        return head + Self.bytes(UInt32(1)) + Self.bytes(UInt32(0)) + body
    }

    private static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        self.bytes(UInt16(4 + value.count)) + self.bytes(type) + value
    }

    /// In memory order, as the kernel has them.
    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        let number = number.littleEndian
        let little = (0..<number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        return UInt16(1).littleEndian == 1 ? little : little.reversed()
    }
}

/// Walks the attributes (rtattr) behind a fixed part.
private struct RouteAttributes {
    private var offset: Int

    init(_ offset: Int) {
        self.offset = offset
    }

    /// - Returns: the type, and where the value is in `body`.
    mutating func next(in body: RawSpan) -> (type: UInt16, value: Range<Int>)? {
        let left = body.byteCount - self.offset
        guard left >= 4 else { return nil }
        let length = Int(body.unaligned(self.offset, as: UInt16.self))
        guard length >= 4, length <= left else { return nil }
        let type = body.unaligned(self.offset + 2, as: UInt16.self)
        let value = (self.offset + 4)..<(self.offset + length)
        self.offset += min(left, (length + 3) & ~3)
        return (type, value)
    }
}

extension SocketAddress {
    /// An address in network order; `nil` if its length is not that of its family.
    fileprivate init?(family: UInt8, _ bytes: RawSpan) {
        switch (family, bytes.byteCount) {
        case (2, 4): self = .ipv4(address: bytes[bigEndianWord: 0], port: 0)
        case (10, 16):
            let words = (0..<4).map { UInt64(bytes[bigEndianWord: 4 * $0]) }
            self = .ipv6(high: words[0] << 32 | words[1], low: words[2] << 32 | words[3], scope: 0, port: 0)
        default: return nil
        }
    }

    /// The address in network order; `nil` for a Unix socket.
    fileprivate var networkBytes: [UInt8]? {
        switch self.unmapped {
        case .ipv4(let address, _): (0..<4).map { UInt8(truncatingIfNeeded: address >> (24 - 8 * $0)) }
        case .ipv6(let high, let low, _, _):
            (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> (56 - 8 * ($0 & 7))) }
        case .unix: nil
        }
    }

    /// The interface of a link-local address.
    fileprivate var scopeInterface: UInt32? {
        if case .ipv6(_, _, let scope, _) = self, scope > 0 { scope } else { nil }
    }
}
