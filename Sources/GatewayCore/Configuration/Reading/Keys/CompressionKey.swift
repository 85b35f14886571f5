/// Keys of `compress`.
package enum CompressionKey: String, CaseIterable, Sendable {
    case level
    case minSize = "min-size"
    case contextTakeover = "context-takeover"
    case windowBits = "window-bits"
}
