/// Keys of an entry of `control.peers`.
package enum ControlPeerKey: String, CaseIterable, Sendable {
    case uid
    case gid
    case scopes
}
