/// The stand-in for `SecIdentity`.
public typealias SecIdentity = ClientIdentity
