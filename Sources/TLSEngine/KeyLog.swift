/// Where the secrets of connections go, one NSS key log line each, so that captured traffic can be read while
/// debugging.
public enum KeyLog: Sendable {
    /// Called on the connection's thread with one line, without its newline.
    case lines(@Sendable (String) -> Void)
    /// Lines are appended to the file at this path, which is made if it is missing.
    case file(String)
}
