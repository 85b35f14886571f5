/// Keys of an entry of `endpoints`.
package enum EndpointKey: String, CaseIterable, Sendable {
    case url
    case weight
}
