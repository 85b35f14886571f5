/// Keys of an entry of `control.transfers.credentials`.
package enum TransferCredentialKey: String, CaseIterable, Sendable {
    case name
    case hosts
    case user
    case password
    case passwordFile = "password-file"
    case token
    case tokenFile = "token-file"
}
