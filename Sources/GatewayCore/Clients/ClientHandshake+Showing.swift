import WebSocketProtocol

extension ClientHandshake {
    /// The request as it went out, but for the key, which was made of chance.
    var shown: RequestHead {
        let text = String(decoding: self.rendered(nonce: []), as: UTF8.self)
        let lines = text.split(separator: "\r\n").dropFirst()
        let fields = lines.compactMap { line -> HTTPField? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return HTTPField(String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " }))
        }
        return RequestHead(method: "GET", target: self.target, fields: HTTPFields(fields))
    }
}

extension ResponseHead {
    /// The head in bytes again, without secrets.
    var shown: [UInt8] {
        let fields = self.fields.all.map { field in
            "\(field.name): \(field.name.lowercased() == "set-cookie" ? HandshakeFacts.hidden : field.value)\r\n"
        }
        return Array("HTTP/1.1 \(self.status) \(self.reason)\r\n\(fields.joined())\r\n".utf8)
    }
}
