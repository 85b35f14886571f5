import NIOHTTP1

extension ResponseHead {
    init(_ head: HTTPResponseHead) {
        self.init(
            status: Int(head.status.code), minorVersion: head.version.minor,
            fields: head.headers.map { HeaderField($0.name, $0.value) })
    }
}
