// LeaseCommands: the commands of leases, and their replies.

import Model

/// How work under a lease ended, as a notice says it.
enum LeaseEnd: Character, Sendable {
  /// The shared tier has the result.
  case shared = "s"
  /// It has nothing: others work themselves, at once.
  case withoutResult = "a"
}

/// What a lease is for: an entry of the shared tier.
struct LeaseName: Hashable, Sendable {
  /// The kinds of entries, as their keys in Redis begin after the fleet's prefix.
  enum Kind: String, Sendable {
    case variant = "v:"
    case source = "s:"
  }

  /// The kind of the entry.
  let kind: Kind
  /// The SHA-256 that tells entries of all kinds apart, in hexadecimal.
  let digest: String

  init(_ kind: Kind, of key: CacheKey) {
    self.kind = kind
    let text = kind == .variant ? key.text : kind.rawValue + key.text
    digest = SharedEntry.digest(Array(text.utf8)[...])
  }

  /// The key of the entry, after the fleet's prefix.
  var entry: String { kind.rawValue + digest }
}

/// A notice for machines that wait.
struct LeaseNotice: Hashable, Sendable {
  let end: LeaseEnd
  /// The digest of the lease.
  let digest: String

  init(_ end: LeaseEnd, _ digest: String) {
    self.end = end
    self.digest = digest
  }

  var text: String { "\(end.rawValue)\(digest)" }

  /// Parses untrusted text.
  init?(_ text: String) {
    guard text.utf8.count == 65, let end = text.first.flatMap({ LeaseEnd(rawValue: $0) }) else {
      return nil
    }
    self.init(end, String(text.dropFirst()))
  }
}

/// The commands of one fleet's leases. `PREFIX` + `l:` + digest is the lease, with its holder's token; `w:` the set of
/// machines that wait for it; `n:` + machine the list of notices for a machine.
struct LeaseCommands: Sendable {
  /// The most notices that wait for one machine.
  static let notices = 10_000
  /// How long notices are kept, in milliseconds. A machine that waits reads them at once.
  private static let noticeLife = 10_000

  let prefix: String
  /// The name of this machine.
  let machine: String
  /// How long a lease lasts without renewal, in milliseconds.
  let life: Int

  /// Takes a free lease, or adds the machine to those that wait. A retry with the same token takes it again. Returns 1 if
  /// the machine has it. If one of the further keys exists it does nothing, and returns 2.
  private static let take = """
    for i=3,#KEYS do if redis.call('PTTL',KEYS[i])~=-2 then return 2 end end
    local v=redis.call('GET',KEYS[1])
    if not v or v==ARGV[1] then
      redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2])
      return 1
    end
    if ARGV[3]~='' then
      redis.call('SADD',KEYS[2],ARGV[3])
      redis.call('PEXPIRE',KEYS[2],2*ARGV[2])
    end
    return 0
    """

  private static let renew = """
    if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end
    return redis.call('PEXPIRE',KEYS[1],ARGV[2])
    """

  /// Writes the entry, if there is one, then frees the lease and tells those that wait: in one step, so a notice is
  /// never early. With another token it does nothing: a machine that lost its lease overwrites no later entry. Errors of
  /// a full Redis are no errors here, because the lease has to go. Returns -1 for another token, 0 if nothing could be
  /// written, 1 if the lease is free, and 2 if it is not because a machine waits.
  private static let end = """
    if redis.call('GET',KEYS[1])~=ARGV[1] then return -1 end
    if ARGV[7]=='1' then
      local c=redis.call('SCARD',KEYS[2])
      if c>0 then return 2 end
    end
    local n,r=ARGV[2],1
    if ARGV[5]~='' then
      local s=redis.pcall('SET',KEYS[3],ARGV[5],'PX',ARGV[6])
      if type(s)=='table' and s.err then n,r=ARGV[3],0 end
    end
    redis.call('DEL',KEYS[1])
    local m=redis.call('SMEMBERS',KEYS[2])
    redis.call('DEL',KEYS[2])
    for _,x in ipairs(m) do
      local l=ARGV[4]..x
      redis.pcall('RPUSH',l,n)
      redis.pcall('LTRIM',l,-\(notices),-1)
      redis.pcall('PEXPIRE',l,\(noticeLife))
    end
    return r
    """

  /// Takes a lease.
  ///
  /// - Parameters:
  ///   - waits: whether the machine gets a notice if another one has it.
  ///   - found: keys of which one makes the lease needless, if it exists.
  func take(
    _ name: LeaseName, token: String, waits: Bool, unless found: [String] = []
  ) -> RedisCommand {
    let keys = [prefix + "l:" + name.digest, prefix + "w:" + name.digest] + found
    let parts =
      ["EVAL", Self.take, "\(keys.count)"] + keys + [token, "\(life)", waits ? machine : ""]
    return RedisCommand(parts.map { Array($0.utf8) })
  }

  func renew(_ name: LeaseName, token: String) -> RedisCommand {
    RedisCommand("EVAL", Self.renew, "1", prefix + "l:" + name.digest, token, "\(life)")
  }

  /// Ends a lease.
  ///
  /// - Parameters:
  ///   - content: the entry as bytes and its life in milliseconds, to be written before.
  ///   - unlessAwaited: whether to do nothing if a machine waits.
  func end(
    _ name: LeaseName, token: String, as end: LeaseEnd, writing content: ([UInt8], Int)? = nil,
    unlessAwaited: Bool = false
  ) -> RedisCommand {
    let texts = [
      "EVAL", Self.end, "3", prefix + "l:" + name.digest, prefix + "w:" + name.digest,
      prefix + name.entry, token, LeaseNotice(end, name.digest).text,
      LeaseNotice(.withoutResult, name.digest).text, prefix + "n:",
    ]
    return RedisCommand(
      texts.map { Array($0.utf8) } + [content?.0 ?? []]
        + ["\(content?.1 ?? 1)", unlessAwaited ? "1" : ""].map { Array($0.utf8) })
  }

  /// Waits for notices up to a second, then takes more of them.
  var readNotices: [RedisCommand] {
    let list = prefix + "n:" + machine
    return [RedisCommand("BLPOP", list, "1"), RedisCommand("LPOP", list, "1000")]
  }

  /// Reads the replies to `readNotices`. What is no notice is left out.
  func notices(in replies: [RedisReply]) -> [LeaseNotice] {
    guard replies.count == 2 else { return [] }
    let texts = (replies[0].elements?.dropFirst().prefix(1)).map(Array.init) ?? []
    return (texts + (replies[1].elements ?? [])).compactMap { $0.text.flatMap { LeaseNotice($0) } }
  }
}
