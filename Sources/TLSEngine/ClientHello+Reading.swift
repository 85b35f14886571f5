extension ClientHello {
    /// Reads the message's body.
    /// - Returns: `nil` if a length does not fit, an extension of interest comes twice, or a name is none.
    init?(reading body: inout ByteCursor) {
        // legacy_version and random, then session identifier, cipher suites and compression methods.
        guard body.read(34) != nil,
            let session = body.readUInt8(), session <= 32, body.read(session) != nil,
            let ciphers = body.readUInt16(), ciphers >= 2, ciphers % 2 == 0, body.read(ciphers) != nil,
            let methods = body.readUInt8(), methods >= 1, body.read(methods) != nil
        else { return nil }
        var serverName: String?
        var protocols: [String]?
        if !body.isAtEnd {
            guard let count = body.readUInt16(), var extensions = body.read(count), body.isAtEnd else { return nil }
            while !extensions.isAtEnd {
                guard let type = extensions.readUInt16(), let count = extensions.readUInt16(),
                    var content = extensions.read(count)
                else { return nil }
                switch type {
                case 0:
                    guard serverName == nil, let name = Self.readServerName(&content) else { return nil }
                    serverName = name
                case 16:
                    guard protocols == nil, let names = Self.readProtocols(&content) else { return nil }
                    protocols = names
                default: break
                }
            }
        }
        self.init(serverName: serverName, applicationProtocols: protocols ?? [])
    }

    /// RFC 6066 §3: one name of type 0 (host_name), in ASCII.
    private static func readServerName(_ content: inout ByteCursor) -> String? {
        guard let count = content.readUInt16(), var list = content.read(count), content.isAtEnd,
            list.readUInt8() == 0, let length = list.readUInt16(), (1...255).contains(length),
            let name = list.read(length)?.rest, name.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return String(decoding: name, as: UTF8.self)
    }

    /// RFC 7301 §3.1: names of 1 to 255 bytes, at least one.
    private static func readProtocols(_ content: inout ByteCursor) -> [String]? {
        guard let count = content.readUInt16(), var list = content.read(count), content.isAtEnd, !list.isAtEnd else {
            return nil
        }
        var names: [String] = []
        while !list.isAtEnd {
            guard let length = list.readUInt8(), length > 0, let name = list.read(length)?.rest else { return nil }
            names.append(String(decoding: name, as: UTF8.self))
        }
        return names
    }
}
