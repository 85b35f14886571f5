/// Where a stream task connects to.
enum StreamPlace: Sendable {
    case host(String, port: Int)
    case unix(path: String)
}
