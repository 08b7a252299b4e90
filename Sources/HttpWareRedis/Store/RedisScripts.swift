/// What is done in Redis in one step. The keys of contents are made of what the index says; on a cluster they are in its slot.
enum RedisScripts {
    /// The responses of an index, each followed by its first piece – of the first ones – or by whether that is there.
    /// KEYS: index. ARGV: what contents' keys begin with; of how many the piece is wanted.
    static let load: RedisArgument = """
        local out, most = {}, tonumber(ARGV[2])
        for i, value in ipairs(redis.call('HVALS', KEYS[1])) do
            local content = ARGV[1] .. string.sub(value, 1, 32)
            out[#out + 1] = value
            out[#out + 1] = redis.call(i <= most and 'HGET' or 'HEXISTS', content, '0')
        end
        return out
        """

    /// Puts a response whose content is there into the index, in place of the one that answers the same requests. The content
    /// of that stays for a while, for who reads it. An index that is full begins anew.
    /// KEYS: index, content. ARGV: variant; record; milliseconds that it lives; pieces; the most variants; what contents' keys
    /// begin with; milliseconds that former contents stay; channel; message.
    static let store: RedisArgument = """
        local pieces = tonumber(ARGV[4])
        if pieces > 0 and redis.call('HLEN', KEYS[2]) ~= pieces then
            redis.call('UNLINK', KEYS[2])
            return 0
        end
        local old = redis.call('HGET', KEYS[1], ARGV[1])
        if old then
            redis.call('PEXPIRE', ARGV[6] .. string.sub(old, 1, 32), ARGV[7])
        elseif redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then
            for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
                redis.call('PEXPIRE', ARGV[6] .. string.sub(value, 1, 32), ARGV[7])
            end
            redis.call('UNLINK', KEYS[1])
        end
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
        if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
        if pieces > 0 then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
        redis.call('PUBLISH', ARGV[8], ARGV[9])
        return 1
        """

    /// Puts another record in the place of one that is still there, or takes it away where the other is empty.
    /// KEYS: index. ARGV: variant; the record that is meant; the other; milliseconds that it lives; what contents' keys begin
    /// with; milliseconds that former contents stay; channel; message.
    static let change: RedisArgument = """
        local old = redis.call('HGET', KEYS[1], ARGV[1])
        if not old or string.sub(old, 33) ~= ARGV[2] then return 0 end
        local mark = string.sub(old, 1, 32)
        if ARGV[3] == '' then
            redis.call('HDEL', KEYS[1], ARGV[1])
            redis.call('PEXPIRE', ARGV[5] .. mark, ARGV[6])
        else
            redis.call('HSET', KEYS[1], ARGV[1], mark .. ARGV[3])
            if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
            redis.call('PEXPIRE', ARGV[5] .. mark, ARGV[4])
        end
        redis.call('PUBLISH', ARGV[7], ARGV[8])
        return 1
        """

    /// Takes all responses of an index away.
    /// KEYS: index. ARGV: what contents' keys begin with; milliseconds that their contents stay; channel; message.
    static let invalidate: RedisArgument = """
        for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
            redis.call('PEXPIRE', ARGV[1] .. string.sub(value, 1, 32), ARGV[2])
        end
        redis.call('UNLINK', KEYS[1])
        redis.call('PUBLISH', ARGV[3], ARGV[4])
        return 1
        """
}
