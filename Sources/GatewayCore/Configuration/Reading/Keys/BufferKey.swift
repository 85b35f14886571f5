/// Keys of `buffer`.
package enum BufferKey: String, CaseIterable, Sendable {
    case high
    case low
}
